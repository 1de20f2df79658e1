"""What compilers made of a variant, captured while it is bound and called for the first time, and never in a timed region."""
