package lockview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
)

// JSON returns a lock as help.Locks describes it.
func JSON(st store.State) statejson.State {
	j := statejson.Of(st)
	for i := range j.Nodes {
		j.Nodes[i].Error = voice.Safe(j.Nodes[i].Error)
	}
	return j
}

// WriteJSONLine writes v on one line.
func WriteJSONLine(w io.Writer, v any) error {
	return encodeJSON(w, v, "")
}

// WriteJSON writes v on several lines.
func WriteJSON(w io.Writer, v any) error { return encodeJSON(w, v, "  ") }

// encodeJSON writes v. Characters that a terminal could act on are escaped: encoding/json
// leaves most of them as they are.
func encodeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	var out strings.Builder
	for _, r := range b.String() {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}
