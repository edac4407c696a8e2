package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/screen"
	"github.com/leasehold-dev/leasehold/store"
)

// voice prints messages, one line each, without ever blocking its caller. The
// caller may be about to stop a command whose lease is lost while nobody reads
// our pipe, or while somebody has pressed Ctrl-S. Its methods are safe for
// concurrent use.
//
// On a terminal it also has one status line, which it overwrites.
type voice struct {
	quiet, verbose bool // set once, before anything is said

	w *os.File
	// terminal: w is one. screen: it knows how to erase a line.
	terminal, screen bool
	queue            chan utterance

	mu     sync.Mutex
	causes map[string]string // why nodes cannot be used, as warnings have said, by the node
}

// utterance is one thing to print.
type utterance struct {
	text    string
	status  bool          // overwrites the status
	written chan struct{} // closed when all before it was written
}

func newVoice(w *os.File) *voice {
	v := &voice{w: w, queue: make(chan utterance, 256)}
	v.screen = screen.Erases(w)
	v.terminal = screen.IsTerminal(w)
	go v.speak()
	return v
}

// error always prints.
func (v *voice) error(format string, args ...any) { v.say(format, args...) }

// fail prints the error that the command ends with.
func (v *voice) fail(err error) { v.error("%s", v.text(err)) }

// plainError returns the text of an error without words that say only that there is one.
func plainError(err error) string {
	text := err.Error()
	if errors.Is(err, store.ErrInvalid) {
		text = strings.Replace(text, store.ErrInvalid.Error()+": ", "", 1)
	}
	return text
}

// note prints unless quiet was requested.
func (v *voice) note(format string, args ...any) {
	if !v.quiet {
		v.say(format, args...)
	}
}

// status replaces the text of the status line. An empty text removes the line.
// Without a terminal it does nothing. A terminal is narrow, so the program's name
// is not printed before it.
func (v *voice) status(text string) {
	if v.screen && !v.quiet {
		v.put(utterance{text: safe(text), status: true})
	}
}

const prefix = "leasehold: "

func (v *voice) say(format string, args ...any) {
	v.put(utterance{text: prefix + safe(fmt.Sprintf(format, args...))})
}

// put queues u, and drops it if that would block.
func (v *voice) put(u utterance) {
	select {
	case v.queue <- u:
	default:
	}
}

// speak writes the queue. It is the only method that may block on output.
func (v *voice) speak() {
	shown := 0 // the width of the status, if there is one
	for u := range v.queue {
		if shown > 0 && u.written == nil {
			v.erase(shown)
			shown = 0
		}
		switch {
		case u.written != nil:
			close(u.written)
		case !u.status:
			v.w.WriteString(u.text + "\n")
		case u.text != "":
			// A line that wraps cannot be overwritten.
			columns := screen.Columns(v.w)
			text := screen.Cut(u.text, columns-1)
			v.w.WriteString(text)
			shown = screen.Width(text)
		}
	}
}

// erase removes a status that was so wide. It has wrapped if the terminal is narrower now.
func (v *voice) erase(width int) {
	columns := screen.Columns(v.w)
	if above := (width - 1) / columns; above > 0 {
		fmt.Fprintf(v.w, "\r\x1b[%dA\x1b[J", above)
		return
	}
	v.w.WriteString("\r\x1b[K")
}

// flush waits until everything queued so far was written, for at most patience.
func (v *voice) flush(patience time.Duration) {
	written := make(chan struct{})
	v.put(utterance{written: written})
	select {
	case <-written:
	case <-time.After(patience):
	}
}

var (
	credentials = regexp.MustCompile(`://\S*@`)
	// example is a URL that shows where credentials go, in our own words.
	example = regexp.MustCompile(`(^|\s)rediss?(-sentinel|-cluster)?://(USER)?:PASSWORD@(HOST|SENTINEL)\b`)
)

// safe removes from a message the credentials of any URL in it, and characters
// that a terminal could act on.
func safe(s string) string {
	// The words of an example are put aside, in characters that do not survive
	// below.
	s = example.ReplaceAllStringFunc(strings.ReplaceAll(s, "\x00", "?"), func(e string) string { return strings.NewReplacer("://", "\x00", "@", "\x00\x00").Replace(e) })
	s = credentials.ReplaceAllString(s, "://***@")
	s = strings.NewReplacer("\x00\x00", "@", "\x00", "://").Replace(s)
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) && r != '\n' && r != '\t' {
			return '?'
		}
		return r
	}, s)
}

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
