"""What the sample region is made of: its file, and targets that can be made sick."""
