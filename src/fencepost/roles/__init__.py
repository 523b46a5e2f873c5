"""The processes of a region: the hands around each decider, the servers, and who watches over them."""
