from airloc.seeding import derive, stream


def test_a_stream_is_the_same_for_the_same_names_and_another_for_others():
    assert stream(1, "a").integers(1 << 30) == stream(1, "a").integers(1 << 30)
    assert len({derive(1, "a"), derive(2, "a"), derive(1, "b"), derive(1, "a", 0), derive(1, "a0")}) == 5


def test_derived_seeds_do_not_change_between_releases():
    assert derive(0, "suite") == 5052290195173221208


def test_derived_seeds_fit_every_generator():
    assert all(0 <= derive(seed, "x") < 2**63 for seed in range(-3, 100))
