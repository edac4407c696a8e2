package history

import (
	"fmt"
	"io"
	"time"

	"github.com/anishathalye/porcupine"
)

// Picture writes an HTML page by porcupine about the history that led to a
// violation found by one of its models. It shows how far an order of the
// operations can be found.
func (h *History) Picture(w io.Writer, v Violation) error {
	for _, m := range h.models() {
		if m.name == v.Check {
			return h.picture(w, m, v.refused)
		}
	}
	return fmt.Errorf("there is no picture of a violation of %s", v.Check)
}

func (h *History) picture(w io.Writer, m model, attempts []*Attempt) error {
	const patience = 10 * time.Second
	// As few as can be looked at, if they show it.
	for n := 30; ; n *= 4 {
		part := attempts[max(0, len(attempts)-n):]
		result, info := porcupine.CheckOperationsVerbose(m.Model, m.operations(part), patience)
		if result != porcupine.Illegal && len(part) < len(attempts) {
			continue
		}
		var notes []porcupine.Annotation
		for _, f := range h.around(part) {
			notes = append(notes, porcupine.Annotation{Tag: f.On, Start: int64(f.At), End: int64(f.End), Description: f.What})
		}
		lane := h.lanes()
		for _, a := range part {
			if a.Outcome == Unknown { // the model shows when it began only
				notes = append(notes, porcupine.Annotation{ClientId: lane(a.ID), Start: int64(a.Asked), End: int64(max(a.Answered, a.Killed)), Description: "unknown", Details: h.Tell(a)})
			}
		}
		info.AddAnnotations(notes)
		return porcupine.Visualize(m.Model, info, w)
	}
}
