package schema

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// crds is the collection of definitions from well-known projects, beside the repository.
const crds = "../../../../shared/crds"

// realDefinitions returns the definitions of crds/real and the file given. It skips the test if there is no collection.
func realDefinitions(tb testing.TB, more ...string) []*apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	files, err := filepath.Glob(crds + "/real/*.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	if len(files) == 0 {
		tb.Skipf("no definitions in %s/real", crds)
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, file := range append(files, more...) {
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		if d := definition(tb, data); d != nil {
			out = append(out, d)
		}
	}
	return out
}

// definition decodes one file; nil if it holds something else.
func definition(tb testing.TB, data []byte) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(data, d); err != nil {
		tb.Fatal(err)
	}
	if d.Kind != "CustomResourceDefinition" {
		return nil
	}
	return d
}

// upjetDefinitions calls f for each of the 2,065 definitions of one provider until it returns false. It skips the test if
// there is no collection.
func upjetDefinitions(tb testing.TB, f func(name string, d *apiextensionsv1.CustomResourceDefinition) bool) {
	tb.Helper()
	file, err := os.Open(crds + "/upjet-aws.tar.gz")
	if errors.Is(err, fs.ErrNotExist) {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	for archive := tar.NewReader(unzipped); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			tb.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			tb.Fatal(err)
		}
		if d := definition(tb, data); d != nil && !f(h.Name, d) {
			return
		}
	}
}
