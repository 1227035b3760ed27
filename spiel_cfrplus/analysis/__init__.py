"""What is measured along a run, and how it is shown."""
