"""The panels of the page Device."""
