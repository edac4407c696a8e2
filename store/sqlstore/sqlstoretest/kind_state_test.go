package sqlstoretest

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/rule"
)

// there formats what inspect shows of the lock. If too is set, list has to show the same.
func (k *kindRun) there(too bool) (string, error) {
	rows, err := k.p.call("inspect", "position, owner, token, ends_in, lim, shared, weight, slot", []byte(kindLock), 100)
	if err != nil {
		return "", err
	}
	if too {
		if err := k.listed(rows); err != nil {
			return "", err
		}
	}
	spec, text, last := "", "", ""
	for _, row := range rows {
		of := rule.Spec{Limit: max(number(row[4]), 1), Shared: isTrue(row[5])}
		switch row[0] {
		case "0":
			spec = fmt.Sprint(of)
			text += fmt.Sprint(row[0], row[1], number(row[2]), span(row[3]), max(number(row[6]), 1), number(row[7]), "; ")
		case "-1":
			last = fmt.Sprint("broken: ", row[1], number(row[2]))
		default:
			spec = fmt.Sprint(of)
			text += fmt.Sprint(row[0], row[1], span(row[3]), "; ")
		}
	}
	var token sql.NullInt64
	err = k.p.db.QueryRow(k.p.on.in(k.p.schema, `SELECT token FROM S.locks WHERE name = ?`), []byte(kindLock)).Scan(&token)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return fmt.Sprint(spec, text, last, " token ", token.Int64), err
}

// listed requires list to show the leases that inspect has shown.
func (k *kindRun) listed(inspected [][]string) error {
	const columns = "owner, token, ends_in, lim, weight, slot"
	rows, err := k.p.call("list", columns, []byte(kindLock), []byte(""), 10)
	if err != nil {
		return err
	}
	words := func(row []string) string { return fmt.Sprint(row[:4], max(number(row[4]), 1), number(row[5])) }
	var want, got []string
	for _, row := range inspected {
		if row[0] == "0" {
			want = append(want, words(slices.Concat(row[1:5], row[6:])))
		}
	}
	for _, row := range rows {
		if row[0] != "" { // otherwise the lock has only waiters
			got = append(got, words(row))
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("list: %v\ninspect: %v", got, want)
	}
	return nil
}

// state formats the record of the rule as there does.
func (k *kindRun) state() string {
	r := rule.Expire(k.r, k.now)
	spec, text, last := "", "", ""
	if len(r.Holds)+len(r.Queue) > 0 {
		spec = fmt.Sprint(r.Spec)
	}
	for _, h := range r.Holds {
		text += fmt.Sprint("0", h.Owner, uint64(h.Token), h.Expiry.Sub(k.now), h.Weight, h.Slot, "; ")
	}
	for i, p := range r.Queue {
		text += fmt.Sprint(i+1, p.Owner, p.Expiry.Sub(k.now), "; ")
	}
	if r.Broken != nil {
		last = fmt.Sprint("broken: ", r.Broken.Owner, uint64(r.Broken.Token))
	}
	return fmt.Sprint(spec, text, last, " token ", uint64(r.Token))
}
