package cel

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

// realDefinitions returns the definitions of crds/real. It skips the test if there is no collection.
func realDefinitions(tb testing.TB) (out []*apiextensionsv1.CustomResourceDefinition) {
	tb.Helper()
	files, err := filepath.Glob(crds + "/real/*.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	if len(files) == 0 {
		tb.Skipf("no definitions in %s/real", crds)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		if d := definition(tb, data); d.Kind == "CustomResourceDefinition" {
			out = append(out, d)
		}
	}
	return out
}

func definition(tb testing.TB, data []byte) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(data, d); err != nil {
		tb.Fatal(err)
	}
	return d
}

// upjetDefinitions calls f for every step-th of the 2,065 definitions of one provider. It skips the test if there is no
// collection.
func upjetDefinitions(tb testing.TB, step int, f func(d *apiextensionsv1.CustomResourceDefinition)) {
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
	archive := tar.NewReader(unzipped)
	for i := 0; ; i++ {
		h, err := archive.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			tb.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || i%step != 0 {
			continue
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			tb.Fatal(err)
		}
		f(definition(tb, data))
	}
}
