package store

import "fmt"

// CheckDowngrade is Lease.Check for Store.Downgrade.
func (l Lease) CheckDowngrade(c Caps) error {
	if !l.Kind.Shared || l.SharesToken() {
		return fmt.Errorf("%w: only the writer of a read-write lock can be downgraded, and this is a %v with weight %d", ErrInvalid, l.Kind, max(l.Weight, 1))
	}
	return l.Check(c)
}

// checkResize returns nil if a lock called name can be resized so in a store of those
// capabilities. Otherwise the error matches ErrInvalid or ErrUnsupported.
func checkResize(name string, from, to Kind, c Caps) error {
	if err := CheckName(name); err != nil {
		return err
	}
	for _, k := range []Kind{from, to} {
		if k.Shared || k.Limit < 0 {
			return fmt.Errorf("%w: resize %q from a %v to a %v: both have to be semaphores", ErrInvalid, name, from, to)
		}
		if err := (Lease{Name: name, Kind: k}).CheckKind(c); err != nil {
			return err
		}
	}
	if c.NoResize {
		return fmt.Errorf("%w: resize %q: in this store a semaphore keeps its number of permits: use a semaphore with another name for another number", ErrUnsupported, name)
	}
	return nil
}
