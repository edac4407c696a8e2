package main

// down is the number of servers it puts out of service, the last of the list.
func (f fault) down() int {
	switch f {
	case freezeOne:
		return 1
	case killTwo:
		return 2
	}
	return 0
}

// befall causes the fault and returns a function that repairs it.
func (b *bench) befall(f fault) (mend func() error, err error) {
	last := b.redis[len(b.redis)-f.down():]
	undo := func() error { return nil }
	for _, s := range last {
		before := undo
		switch f {
		case freezeOne:
			err = s.Freeze()
			undo = func() error {
				if err := s.Thaw(); err != nil {
					return err
				}
				return before()
			}
		case killTwo:
			s.Kill()
			undo = func() error {
				if err := s.Restart(); err != nil {
					return err
				}
				return before()
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return undo, nil
}
