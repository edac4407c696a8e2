package clientgo_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// The manifests of the server have the fields that Kubernetes knows, and no others.
func TestManifests(t *testing.T) {
	files, err := filepath.Glob("../../packaging/kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range bytes.Split(b, []byte("\n---\n")) {
			if _, kind, err := decoder.Decode(one, nil, nil); err != nil {
				t.Errorf("%s, %v: %v", filepath.Base(file), kind, err)
			}
		}
	}
}
