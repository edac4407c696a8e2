package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/screen"
	"github.com/leasehold-dev/leasehold/store"
)

// watchList runs "ls --watch" until it cannot print any more.
func watchList(p *program, ctx context.Context, st *store.Store, prefix string, o lsFlags) error {
	redraws := !o.asJSON && screen.Erases(p.stdout)
	before, first := "", true
	for ; ; time.Sleep(o.every) {
		l := listed(ctx, st, prefix)
		if first && l.states == nil && l.err != nil {
			return l.err
		}
		now := time.Now()
		key := l.key()
		var err error
		switch {
		case redraws:
			err = redraw(p, l, prefix, o.every, now)
		case key == before && !first:
		case o.asJSON:
			err = writeJSONLine(p.stdout, changedListJSON{now.UTC(), errorText(l.err), l.json()})
		default:
			_, err = fmt.Fprintf(p.stdout, "%s%s\n%s", now.Local().Format(time.RFC3339), afterTime(l), screen.Table(l.rows(now), 0))
		}
		if err != nil {
			return err
		}
		before, first = key, false
	}
}

// changedListJSON is a line of "ls --watch --json", as "leasehold help json" describes it.
type changedListJSON struct {
	Time  time.Time    `json:"time"`
	Error string       `json:"error,omitempty"`
	Locks []listedJSON `json:"locks"`
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return safe(plainError(err))
}

// afterTime is what follows the time of a list that is no table on a terminal.
func afterTime(l listing) string {
	if l.err != nil {
		return ": " + strings.ReplaceAll(errorText(l.err), "\n", " ")
	}
	return ""
}

// key is the same for lists that differ in times only.
func (l listing) key() string {
	var b strings.Builder
	for _, s := range l.states {
		fmt.Fprintf(&b, "%q", s.Name)
		for _, h := range s.Leases() {
			fmt.Fprintf(&b, " %q %d %t", h.Holder.Owner, h.Weight, h.Holder.Broken)
		}
		n, counted := l.waiting[s.Name]
		fmt.Fprintf(&b, " %d %t %d\n", n, counted, len(s.Undecided))
	}
	return b.String() + errorText(l.err)
}

// redraw prints the list where the one before was. It fits on the terminal, whatever its size is by
// now.
func redraw(p *program, l listing, prefix string, every time.Duration, now time.Time) error {
	columns, lines := screen.Size(p.stdout)
	in := screen.ColoursOn(p.stdout)
	title := fmt.Sprintf("%s  %s, every %s", now.Format(time.TimeOnly), count(len(l.states), "lock"), short(every))
	if prefix != "" {
		title += fmt.Sprintf(", of %q", prefix)
	}
	var all []string
	if len(l.states) > 0 {
		all = strings.Split(strings.TrimSuffix(screen.Table(l.rows(now), columns), "\n"), "\n")
		all[0] = in.Bold(all[0])
	}
	if note := l.note(); l.err != nil || note != "" {
		if l.err != nil {
			note = errorText(l.err)
		}
		all = append([]string{in.Red(screen.Cut(strings.ReplaceAll(note, "\n", " "), columns))}, all...)
	}
	if most := max(lines-3, 1); len(all) > most {
		more := len(all) - most + 1
		all = append(all[:most-1], screen.Cut(fmt.Sprintf("... and %s more", count(more, "line")), columns))
	}
	_, err := p.stdout.WriteString("\x1b[H\x1b[2J" + screen.Cut(title, columns) + "\n\n" + strings.Join(all, "\n"))
	return err
}
