"""What a configuration's agent needs from its surroundings, looked at; and a bundle for who helps, without secrets."""
