package kubernetesstore

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// sample returns an encoded Lease with fields of all kinds that locks do not know of.
func sample() message {
	var o object
	o.meta.add(nameOf, []byte("a"))
	o.meta.setEntry(labelsOf, "team", "x")
	o.meta.setEntry(annotationsOf, "note", "y")
	o.meta.setNumber(7, -3) // generation
	o.spec.setTime(renewedOf, time.Unix(1700000000, 123456789))
	o.spec = append(o.spec, 9<<3|1, 1, 2, 3, 4, 5, 6, 7, 8)    // 64 bits
	o.spec = append(o.spec, 10<<3|5, 1, 2, 3, 4)               // 32 bits
	o.rest = append(o.rest, 0xc0, 0x3e, 1, 0xc2, 0x3e, 1, 'z') // a number and a text of field 1000
	return envelop(apiVersion, "Lease", o.encode())
}

func TestFieldsStayWhenOthersChange(t *testing.T) {
	o, err := decode(sample())
	if err != nil {
		t.Fatal(err)
	}
	o.meta.set(nameOf, []byte("longer"))
	o.meta.setEntry(labelsOf, recordKey, recordForm)
	o.meta.setEntry(annotationsOf, "note", "z")
	o.meta.setEntry(annotationsOf, "other", "")
	o.spec.setNumber(secondsOf, 1<<40)
	o, err = decode(envelop(apiVersion, "Lease", o.encode()))
	if err != nil {
		t.Fatal(err)
	}
	label, _ := o.meta.entry(labelsOf, "team")
	note, _ := o.meta.entry(annotationsOf, "note")
	_, other := o.meta.entry(annotationsOf, "other")
	_, none := o.meta.entry(annotationsOf, "none")
	if o.meta.text(nameOf) != "longer" || label != "x" || note != "z" || !other || none || o.meta.number(7) != -3 {
		t.Errorf("metadata %q", o.meta)
	}
	if at := o.spec.time(renewedOf); o.spec.number(secondsOf) != 1<<40 || !at.Equal(time.Unix(1700000000, 123456000)) ||
		!bytes.Contains(o.spec, []byte{9<<3 | 1, 1, 2, 3, 4, 5, 6, 7, 8, 10<<3 | 5, 1, 2, 3, 4}) {
		t.Errorf("spec %q with the time %v", o.spec, at)
	}
	if string(o.rest) != "\xc0\x3e\x01\xc2\x3e\x01z" {
		t.Errorf("rest %q", o.rest)
	}
}

// A message that ends too early is an error, and no bytes make the client panic.
func TestDamagedMessages(t *testing.T) {
	whole, _ := decode(sample())
	text := whole.encode()
	for n := range text {
		o, err := decode(bytes.Clone(text[:n]))
		if err == nil && !bytes.HasPrefix(text, o.encode()[:min(n, len(o.encode()))]) || err != nil && !errors.Is(err, errMessage) {
			t.Errorf("the first %d of %d bytes: %v", n, len(text), err)
		}
	}
	for range 20000 {
		damaged := bytes.Clone(text)
		for range 1 + rand.IntN(3) {
			damaged[rand.IntN(len(damaged))] = byte(rand.Uint32())
		}
		if o, err := decode(damaged); err == nil {
			o.meta.setEntry(annotationsOf, "note", "")
			_, _ = o.item("", time.Second)
		}
		_, _ = pushed(bytes.Clone(damaged))
	}
}
