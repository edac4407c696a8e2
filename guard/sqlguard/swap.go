package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/fence"
)

// update is a compare-and-set on one row, with a query that finds out why it did
// nothing.
type update struct {
	row      Row
	sql      string
	args     []any
	look     string
	lookArgs []any
}

// update builds the statements that set the column to the token.
func (d Dialect) update(row Row, token fence.Token, set string, args []any) (update, error) {
	err := errors.Join(d.check(), identifier(row.Table), identifier(row.Column))
	for name := range row.Key {
		err = errors.Join(err, identifier(name))
	}
	if len(row.Key) == 0 {
		err = errors.Join(err, fmt.Errorf("%w: %s: no key: it would match every row", ErrInvalid, row))
	}
	if err != nil {
		return update{}, err
	}
	u := update{row: row, args: slices.Clone(args)}
	bind := func(to *[]any, v any) string {
		*to = append(*to, v)
		return d.mark(len(*to))
	}
	var b strings.Builder
	b.WriteString("UPDATE " + row.Table + " SET ")
	if set != "" {
		b.WriteString(set + ", ")
	}
	// Set in every case: it is at once the new value, or already there.
	b.WriteString(row.Column + " = " + bind(&u.args, int64(token)) + " WHERE ")
	where := make([]string, 0, len(row.Key))
	whereLook := make([]string, 0, len(row.Key))
	for _, name := range slices.Sorted(maps.Keys(row.Key)) {
		where = append(where, name+" = "+bind(&u.args, row.Key[name]))
		whereLook = append(whereLook, name+" = "+bind(&u.lookArgs, row.Key[name]))
	}
	where = append(where, fmt.Sprintf("(%[1]s <= %[2]s OR %[1]s IS NULL)", row.Column, bind(&u.args, int64(token))))
	b.WriteString(strings.Join(where, " AND "))
	u.sql = b.String()
	u.look = "SELECT " + row.Column + " FROM " + row.Table + " WHERE " + strings.Join(whereLook, " AND ")
	if d == MySQL {
		u.look += " FOR UPDATE" // else a transaction reads its snapshot, not the current row
	}
	return u, nil
}

// run runs the update. If it changed no row, the token in the column says why.
func (u update) run(ctx context.Context, db Execer, token fence.Token) error {
	again := newTries()
	seen := 0 // how many times in a row the column already had the value
	for range 1000 {
		result, err := db.ExecContext(ctx, u.sql, u.args...)
		if err != nil {
			// Outside a transaction a single statement can be retried after a
			// conflict. Inside one, only the whole transaction can.
			if _, alone := db.(*sql.DB); alone {
				err = again.after(ctx, err)
			}
			if err != nil {
				return fmt.Errorf("sqlguard: %s: %w", u.row, err)
			}
			continue
		}
		switch n, err := result.RowsAffected(); {
		case err != nil:
			return fmt.Errorf("sqlguard: %s: the driver does not report how many rows an update changed, which the check needs: %w", u.row, err)
		case n > 1:
			return fmt.Errorf("sqlguard: the key of %s matches %d rows, and all were changed: it must match one", u.row, n)
		case n == 1:
			return nil
		}
		var found any
		if err := db.QueryRowContext(ctx, u.look, u.lookArgs...).Scan(&found); err != nil {
			return fmt.Errorf("sqlguard: %s: %w", u.row, err)
		}
		highest, err := asToken(found)
		if err != nil {
			return fmt.Errorf("sqlguard: %s: column %s: %w", u.row, u.row.Column, err)
		}
		if _, err := fence.Admit(u.row.String(), highest, token); err != nil {
			return err
		}
		switch {
		case highest != token:
			seen = 0 // changed between the two statements; it may work now
		case seen == 1:
			// MySQL does not count rows that an update matched but left
			// unchanged. Found twice in a row, the value was there during the
			// update.
			return nil
		default:
			seen++
		}
	}
	return fmt.Errorf("sqlguard: %s changes too fast to find out why the update was refused; nothing was written", u.row)
}

// asToken converts what a driver returns for an integer.
func asToken(v any) (fence.Token, error) {
	switch v := v.(type) {
	case nil:
		return 0, nil
	case int64:
		if v >= 0 {
			return fence.Token(v), nil
		}
	case uint64:
		return fence.Token(v), nil
	case []byte:
		return asToken(string(v))
	case string:
		if v != "0" {
			return fence.Parse(v)
		}
		return 0, nil
	}
	return 0, fmt.Errorf("%w: %.40s (%T)", fence.ErrInvalid, fmt.Sprint(v), v)
}
