package main

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The pictures in this folder are those that the program draws, docs/pictures.md shows each, and
// each is valid XML.
func TestPicturesAreDrawn(t *testing.T) {
	page, err := os.ReadFile("../pictures.md")
	if err != nil {
		t.Fatal(err)
	}
	drawn := pictures()
	for name, want := range drawn {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s is not what the program draws (%v): run it in docs/pictures", name, err)
		}
		if !strings.Contains(string(page), "](pictures/"+name+")") {
			t.Errorf("docs/pictures.md does not show %s", name)
		}
		for d := xml.NewDecoder(strings.NewReader(want)); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	found, err := filepath.Glob("*.svg")
	if err != nil || len(found) != len(drawn) {
		t.Errorf("%d pictures in the folder (%v), want the %d that the program draws", len(found), err, len(drawn))
	}
}
