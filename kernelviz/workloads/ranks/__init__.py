"""What workloads of two processes share: the answers of ranks, meeting, and copies between their devices."""
