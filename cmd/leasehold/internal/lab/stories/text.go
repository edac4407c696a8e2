package stories

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// width of what is printed, in columns.
const width = 79

// Print writes what the story is about, for reading before its events.
func (s Story) Print(w io.Writer) error {
	_, err := io.WriteString(w, s.Name+": "+s.Title+"\n\n"+fill("  ", s.Summary))
	return err
}

// Text returns the event as it is printed. At the end of a part it begins with the outcome in capitals.
func (e Event) Text() string {
	switch e.Kind {
	case Begin:
		return "\n" + fill("  "+strings.ToUpper(e.Part)+"  ", e.What) + "\n"
	case Note:
		return fill(strings.Repeat(" ", margin), e.What)
	case End:
		return "\n" + fill("  "+strings.ToUpper(string(e.Outcome))+": ", e.What)
	}
	mark := ' '
	if e.Kind == Fault {
		mark = '!'
	}
	at := time.Duration(e.At) * time.Millisecond
	return fill(fmt.Sprintf("  %c %7.3f  %-8s  ", mark, at.Seconds(), e.Actor), e.What)
}

// margin is where what somebody does begins: after mark, time and name.
const margin = 23

// fill breaks text into lines, the first after lead, the others below its end.
func fill(lead, text string) string {
	var b strings.Builder
	b.WriteString(lead)
	indent := utf8.RuneCountInString(lead)
	column, first := indent, true
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case first:
		case column+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column, first = column+n, false
	}
	b.WriteByte('\n')
	return b.String()
}
