package sqlguard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/fence"
)

// Row names a row of a table of yours, and the column of it that decides who may
// write: one for tokens (a 64-bit whole number, NULL or 0 until the first write), or
// one for owners (text, NULL or empty until the first claim; compared as the
// database compares it). Names are letters, digits and _; a schema goes before a
// dot.
type Row struct {
	Table string
	// Key is what tells the row from others: values by column. It must match
	// one row.
	Key map[string]any
	// Column has the token or the owner.
	Column string
}

func (r Row) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r.Key)) {
		parts = append(parts, fmt.Sprintf("%s=%.40s", name, fmt.Sprint(r.Key[name])))
	}
	return fmt.Sprintf("%s[%s]", r.Table, strings.Join(parts, " "))
}

// UpdateRow changes a row that has a token column, if token is not smaller than
// what stands there:
//
//	UPDATE table SET set, column = token WHERE key AND column <= token
//
// Set is what comes before the token, such as "state = $1, paid = $2" in
// PostgreSQL, "state = ?, paid = ?" elsewhere, with args for it; it must not be
// made of input from outside. An empty set only moves the token on: in a
// transaction, that locks the row for whatever follows.
//
// It blocks while another transaction has the row. Errors: a *fence.StaleError
// when the row has seen a larger token; one that matches sql.ErrNoRows when there
// is no such row; ErrInvalid or fence.ErrInvalid before anything is sent; else
// what the database said. Given a *sql.DB it tries conflicts again, for some
// seconds; within a transaction, only the whole of it can be. Calling it again
// with the same token is fine.
func (d Dialect) UpdateRow(ctx context.Context, db Execer, row Row, token fence.Token, set string, args ...any) error {
	if err := token.Check(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrInvalid, row, err)
	}
	u, err := d.update(row, set, args, int64(token), "(%[1]s <= %[2]s OR %[1]s IS NULL)")
	if err != nil {
		return err
	}
	return u.run(ctx, db, func(found any) (bool, error) {
		highest, err := asToken(found)
		if err != nil {
			return false, fmt.Errorf("sqlguard: %s: column %s: %w", row, row.Column, err)
		}
		_, err = fence.Admit(row.String(), highest, token)
		return highest == token, err
	})
}
