package cli

import (
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/leasehold-dev/leasehold/store"
)

// told notes that a warning said why a node cannot be used.
func (v *voice) told(node, cause string) {
	if v.quiet {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.causes == nil {
		v.causes = map[string]string{}
	}
	v.causes[node] = cause
}

// untold leaves out the nodes of which a warning has said the same.
func (v *voice) untold(nodes []store.NodeOutcome) []store.NodeOutcome {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(nodes), func(n store.NodeOutcome) bool {
		cause, ok := v.causes[n.Node]
		return ok && n.Err != nil && (store.Cause(n.Err).Error() == cause || n.Outcome == store.Unreachable && broke(cause))
	})
}

// broke reports whether a cause is that a server ended a connection. That it accepts no other one
// afterwards says the same.
func broke(cause string) bool {
	return cause == io.EOF.Error() || cause == syscall.ECONNRESET.Error() || cause == syscall.EPIPE.Error()
}

// text returns the text of an error. One about several servers leaves out those of which a warning
// has said the same, and on a terminal has a line for each of the others.
func (v *voice) text(err error) string {
	text := plainError(err)
	var quorum *store.QuorumError
	if !errors.As(err, &quorum) || len(quorum.Nodes) <= 1 {
		return text
	}
	before, after, found := strings.Cut(text, quorum.Error())
	if !found {
		return text
	}
	first, next, hint := ": ", "; ", "; "
	if v.terminal {
		first, next, hint = "\n  ", "\n  ", "\n"
		if after = strings.TrimLeft(after, " :;"); after != "" {
			after = "\n" + after
		}
	}
	text = before + quorum.Summary()
	for i, n := range v.untold(quorum.Nodes) {
		if i == 0 {
			text += first
		} else {
			text += next
		}
		text += quorum.Describe(n)
	}
	if h := quorum.Hint(); h != "" {
		text += hint + h
	}
	return text + after
}
