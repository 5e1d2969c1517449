"""Boards: data that people have, the call that the documentation recommends, and its peers.

One file each, with the board, what is run on one case, and the numbers of its page; ``_board.py``
has what they share. The data is in the folder that ``PERPEND_DATA`` names; peers of other packages
are used where they are installed.
"""
