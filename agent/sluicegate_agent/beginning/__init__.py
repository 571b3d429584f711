"""A first configuration: what a broker's topics say, looked at for some seconds, as sources that are right."""
