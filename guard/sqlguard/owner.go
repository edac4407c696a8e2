package sqlguard

import (
	"context"
	"errors"
	"fmt"
)

// ErrNotOwner means that another owner has claimed the row since, or that none
// has claimed it yet. The error is always an *OwnerError.
var ErrNotOwner = errors.New("sqlguard: the row belongs to another owner")

// OwnerError reports which owner was refused and which one the row belongs to. It
// matches ErrNotOwner.
type OwnerError struct {
	Row   Row
	Owner string
	// Found is the owner in the row, empty if nobody has claimed it.
	Found string
}

func (e *OwnerError) Error() string {
	if e.Found == "" {
		return fmt.Sprintf("%s was never claimed, so %q may not change it: call ClaimRow first, before reading it", e.Row, e.Owner)
	}
	return fmt.Sprintf("%s belongs to %q now, so %q may not change it", e.Row, e.Found, e.Owner)
}

// Is reports whether target is ErrNotOwner.
func (e *OwnerError) Is(target error) bool { return target == ErrNotOwner }

// ClaimRow writes the owner of a lease to the row, in place of any other owner.
// Call it first, before reading the row. The error matches sql.ErrNoRows if there
// is no such row, or ErrInvalid if nothing was sent, or is that of the database.
func (d Dialect) ClaimRow(ctx context.Context, db Execer, row Row, owner string) error {
	if owner == "" {
		return fmt.Errorf("%w: %s: the owner is empty: use that of the lease", ErrInvalid, row)
	}
	u, err := d.update(row, "", nil, owner, "")
	if err != nil {
		return err
	}
	return u.run(ctx, db, func(found any) (bool, error) { return asText(found) == owner, nil })
}

// UpdateOwned changes a row that was claimed with ClaimRow, if owner is still the
// owner in it. It runs
//
//	UPDATE table SET set WHERE key AND column = owner
//
// set and args are as in UpdateRow. The error is an *OwnerError if another owner
// has claimed the row. Other errors are those of UpdateRow.
func (d Dialect) UpdateOwned(ctx context.Context, db Execer, row Row, owner, set string, args ...any) error {
	if owner == "" {
		return fmt.Errorf("%w: %s: the owner is empty: use that of the lease", ErrInvalid, row)
	}
	u, err := d.update(row, set, args, owner, "%[1]s = %[2]s")
	if err != nil {
		return err
	}
	return u.run(ctx, db, func(found any) (bool, error) {
		if got := asText(found); got != owner {
			return false, &OwnerError{Row: row, Owner: owner, Found: got}
		}
		return true, nil
	})
}
