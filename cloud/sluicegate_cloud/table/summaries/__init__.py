"""What the files of a table come to, a row a stream: for who looks after a fleet."""
