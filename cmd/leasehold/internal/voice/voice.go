package voice

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/screen"
	"github.com/leasehold-dev/leasehold/store"
)

// Voice prints messages, one line each, without ever blocking its caller. The
// caller may be about to stop a command whose lease is lost while nobody reads
// our pipe, or while somebody has pressed Ctrl-S. Its methods are safe for
// concurrent use.
//
// On a terminal it also has one status line, which it overwrites.
type Voice struct {
	// Quiet leaves out all but errors, and Verbose adds debug messages. They are set once, before
	// anything is said.
	Quiet, Verbose bool

	w        *os.File
	terminal bool // w is one
	// Screen is set if w is a terminal that knows how to erase a line.
	Screen bool
	queue  chan utterance
}

// utterance is one thing to print.
type utterance struct {
	text    string
	status  bool          // overwrites the status
	written chan struct{} // closed when all before it was written
}

func New(w *os.File) *Voice {
	v := &Voice{w: w, queue: make(chan utterance, 256)}
	v.Screen = screen.Erases(w)
	v.terminal = screen.IsTerminal(w)
	go v.speak()
	return v
}

// Error always prints.
func (v *Voice) Error(format string, args ...any) { v.say(format, args...) }

// Fail prints the error that the command ends with.
func (v *Voice) Fail(err error) { v.Error("%s", v.Text(err)) }

// Plain returns the text of an error without words that say only that there is one.
func Plain(err error) string {
	text := err.Error()
	if errors.Is(err, store.ErrInvalid) {
		text = strings.Replace(text, store.ErrInvalid.Error()+": ", "", 1)
	}
	return text
}

// Note prints unless quiet was requested.
func (v *Voice) Note(format string, args ...any) {
	if !v.Quiet {
		v.say(format, args...)
	}
}

// NoteText is note for text that is no format.
func (v *Voice) NoteText(text string) { v.Note("%s", text) }

// Status replaces the text of the status line. An empty text removes the line.
// Without a terminal it does nothing. A terminal is narrow, so the program's name
// is not printed before it.
func (v *Voice) Status(text string) {
	if v.Screen && !v.Quiet {
		v.put(utterance{text: Safe(text), status: true})
	}
}

const prefix = "leasehold: "

func (v *Voice) say(format string, args ...any) {
	v.put(utterance{text: prefix + Safe(fmt.Sprintf(format, args...))})
}

// put queues u, and drops it if that would block.
func (v *Voice) put(u utterance) {
	select {
	case v.queue <- u:
	default:
	}
}

// speak writes the queue. It is the only method that may block on output.
func (v *Voice) speak() {
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
func (v *Voice) erase(width int) {
	columns := screen.Columns(v.w)
	if above := (width - 1) / columns; above > 0 {
		fmt.Fprintf(v.w, "\r\x1b[%dA\x1b[J", above)
		return
	}
	v.w.WriteString("\r\x1b[K")
}

// Flush waits until everything queued so far was written, for at most patience.
func (v *Voice) Flush(patience time.Duration) {
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

// Safe removes from a message the credentials of any URL in it, and characters
// that a terminal could act on.
func Safe(s string) string {
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

// Text returns the text of an error. On a terminal, one about several servers has a line for each.
func (v *Voice) Text(err error) string {
	text := Plain(err)
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
	for i, n := range quorum.Nodes {
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
