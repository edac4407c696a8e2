package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// voice prints messages, one line each, without ever blocking its caller. The
// caller may be about to stop a command whose lease is lost while nobody reads
// our pipe, or while somebody has pressed Ctrl-S. Its methods are safe for
// concurrent use.
//
// On a terminal it also has one status line, which it overwrites.
type voice struct {
	quiet, verbose bool // set once, before anything is said

	w      *os.File
	screen bool // w is a terminal that knows how to erase a line
	queue  chan utterance
}

// utterance is one thing to print.
type utterance struct {
	text    string
	status  bool          // overwrites the status
	written chan struct{} // closed when all before it was written
}

func newVoice(w *os.File) *voice {
	v := &voice{w: w, queue: make(chan utterance, 256)}
	v.screen = term.IsTerminal(int(w.Fd())) && os.Getenv("TERM") != "dumb"
	go v.speak()
	return v
}

// error always prints.
func (v *voice) error(format string, args ...any) { v.say(format, args...) }

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
	shown := false // there is a status
	for u := range v.queue {
		if shown && u.written == nil {
			v.w.WriteString("\r\x1b[K")
			shown = false
		}
		switch {
		case u.written != nil:
			close(u.written)
		case !u.status:
			v.w.WriteString(u.text + "\n")
		case u.text != "":
			v.w.WriteString(v.cut(u.text))
			shown = true
		}
	}
}

// cut shortens a status to less than the terminal's width: a line that wraps
// cannot be overwritten.
func (v *voice) cut(s string) string {
	width, _, err := term.GetSize(int(v.w.Fd()))
	if err != nil || width < 1 {
		width = 80
	}
	if utf8.RuneCountInString(s) < width {
		return s
	}
	return string([]rune(s)[:max(width-1, 0)])
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
