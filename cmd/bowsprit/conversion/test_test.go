package conversion

import (
	"bytes"
	"strings"
	"testing"
)

// run returns the output and the error of "bowsprit convert".
func run(t *testing.T, args ...string) (string, string) {
	t.Helper()
	var out bytes.Buffer
	cmd := Command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	text := ""
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		text = err.Error()
	}
	return out.String(), text
}

func TestConvertTest(t *testing.T) {
	for _, test := range []struct {
		args      []string
		out, fail string // parts of the output and of the error
	}{
		{[]string{"testdata/good.yaml"}, "2000 generated objects, 1 of files: all return as they were.\n", ""},
		{[]string{"testdata/good.yaml", "--objects", "5", "-o", "json"}, `"generated": 10`, ""},
		{[]string{"testdata/bad.yaml"}, "becomes an invalid object of v2: buckets: Invalid value: 1: buckets in body " +
			"should have at least 2 items\n", "some objects do not convert there and back"},
		{[]string{"testdata/good.yaml", "--objects", "0"}, "", "--objects: 0 is not between 1 and 10000000"},
		{[]string{"testdata/none.yaml"}, "", "no CustomResourceDefinition with the annotation bowsprit.dev/conversion found"},
	} {
		out, fail := run(t, append([]string{"test"}, test.args...)...)
		if !strings.Contains(out, test.out) || !strings.Contains(fail, test.fail) || (test.fail == "") != (fail == "") {
			t.Errorf("%v prints\n%s%s", test.args, out, fail)
		}
	}
}
