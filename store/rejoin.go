package store

import "fmt"

// checkRejoin returns nil if a store of those capabilities can release the lease of r and
// make a place for next. Otherwise the error matches ErrInvalid or ErrUnsupported.
func checkRejoin(r ReleaseRequest, next WaitRequest, c Caps) error {
	if err := r.Check(c); err != nil {
		return err
	}
	if err := next.Check(c); err != nil {
		return err
	}
	if r.Name != next.Name || r.Owner == next.Owner {
		return fmt.Errorf("%w: release and rejoin of lock %q: the place has to be for the same lock, and of another owner", ErrInvalid, r.Name)
	}
	return nil
}
