"""What may go over the link: bytes a day or month, a rate, quiet hours; kept over restarts."""
