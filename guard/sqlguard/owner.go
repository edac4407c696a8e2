package sqlguard

import (
	"context"
	"errors"
	"fmt"
)

// ErrNotOwner: the row has been claimed by another owner since, or by none yet.
// Always an *OwnerError.
var ErrNotOwner = errors.New("sqlguard: the row belongs to another owner")

// OwnerError says who was refused and whose the row is. It matches ErrNotOwner.
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

// Is makes errors.Is(err, ErrNotOwner) true.
func (e *OwnerError) Is(target error) bool { return target == ErrNotOwner }

// ClaimRow writes the lease's owner to the row, whoever stood there: it is the
// first thing to do with the lease, before the row is read. Errors: one that
// matches sql.ErrNoRows when there is no such row, ErrInvalid, or what the
// database said.
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

// UpdateOwned changes a row that was claimed with ClaimRow, if owner still
// stands there:
//
//	UPDATE table SET set WHERE key AND column = owner
//
// Set and args are as in UpdateRow. Errors: an *OwnerError when somebody else
// has claimed the row; else those of UpdateRow.
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
