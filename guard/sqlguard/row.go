package sqlguard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/fence"
)

// Row names a row of a table of the caller, and the column with the largest token
// that has written the row: a 64-bit integer, NULL or 0 until the first write.
// Names are letters, digits and _; a schema goes before a dot.
type Row struct {
	Table string
	// Key has the values, by column, that identify the row. It must match exactly
	// one row.
	Key map[string]any
	// Column is the column with the token.
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
// the one in it. It runs
//
//	UPDATE table SET set, column = token WHERE key AND column <= token
//
// set is the list of assignments, such as "state = $1, paid = $2" in PostgreSQL
// and "state = ?, paid = ?" elsewhere, and args are its arguments. It must not
// contain untrusted input. If set is empty, only the token is updated, which in a
// transaction locks the row for the statements that follow.
//
// UpdateRow blocks while another transaction has the row. The error is a
// *fence.StaleError if the row has seen a larger token. It matches sql.ErrNoRows
// if there is no such row, and ErrInvalid or fence.ErrInvalid if nothing was
// sent. Other errors are those of the database. If db is a *sql.DB, UpdateRow
// retries conflicts for some seconds; within a transaction, the caller has to
// retry the whole transaction. It is safe to call UpdateRow again with the same
// token.
func (d Dialect) UpdateRow(ctx context.Context, db Execer, row Row, token fence.Token, set string, args ...any) error {
	if err := token.Check(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrInvalid, row, err)
	}
	u, err := d.update(row, token, set, args)
	if err != nil {
		return err
	}
	return u.run(ctx, db, token)
}
