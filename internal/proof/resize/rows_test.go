package resize

import (
	"reflect"
	"strings"
	"testing"
)

// Every row has its verdict: what must hold, holds in every state, and what must break is found
// broken.
func TestVerdicts(t *testing.T) {
	for _, row := range Rows() {
		t.Run(row.Name, func(t *testing.T) {
			r := Search(row.Model)
			t.Logf("%s: %d states\n%s", row.What, r.States, strings.Join(r.Trace, "\n"))
			if r.Found != row.Want {
				t.Errorf("found %q, want %q", r.Found, row.Want)
			}
			if (r.Found == "") != (len(r.Trace) == 0) {
				t.Errorf("found %q with %d steps, want steps if and only if something is found", r.Found, len(r.Trace))
			}
		})
	}
}

// Each mechanism of the protocol is switched off in a row that finds something broken, and on in
// all others.
func TestMechanismsAreNeeded(t *testing.T) {
	needed := map[string]bool{}
	for _, row := range Rows() {
		off := reflect.ValueOf(row.Model.Off)
		for i := range off.NumField() {
			if !off.Field(i).Bool() {
				continue
			}
			if needed[off.Type().Field(i).Name] = true; row.Want == "" {
				t.Errorf("row %s expects nothing without a mechanism", row.Name)
			}
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Off]()) {
		if !needed[f.Name] {
			t.Errorf("no row shows that %s is needed", f.Name)
		}
	}
}
