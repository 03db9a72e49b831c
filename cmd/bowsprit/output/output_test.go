package output_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/spf13/pflag"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

// TestForm checks the values of the flag, and the output of each.
func TestForm(t *testing.T) {
	t.Parallel()
	failure := errors.New("the pipe is closed")
	for args, want := range map[string]string{
		"":              "a text",
		"-otext":        "a text",
		"-ojson":        "{\n  \"name\": \"<a>\"\n}\n",
		"--output=yaml": "name: <a>\n",
		"-oJSON":        `invalid argument "JSON" for "-o, --output" flag: use text, json or yaml`,
		"--output=":     `invalid argument "" for "-o, --output" flag: use text, json or yaml`,
	} {
		var form output.Form
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		form.Bind(flags)
		if args != "" {
			if err := flags.Parse([]string{args}); err != nil {
				if err.Error() != want {
					t.Errorf("%s: %v", args, err)
				}
				continue
			}
		}
		var out bytes.Buffer
		value := struct {
			Name string `json:"name"`
		}{"<a>"}
		text := func(out io.Writer) error {
			_, err := fmt.Fprint(out, "a text")
			return err
		}
		if err := form.Print(&out, value, text); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v", args, out.String(), err)
		}
		if form.ForPrograms() == (form == output.Text) {
			t.Errorf("%s: for programs: %t", args, form.ForPrograms())
		}
		if err := form.Print(closed{failure}, value, func(out io.Writer) error {
			_, err := out.Write([]byte("a text"))
			return err
		}); !errors.Is(err, failure) {
			t.Errorf("%s: a closed pipe: %v", args, err)
		}
	}
}

type closed struct{ error }

func (c closed) Write([]byte) (int, error) { return 0, c.error }

func TestSize(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{
		0: "0 KiB", 1: "1 KiB", 1<<20 - 1: "1024 KiB", 1 << 20: "1.0 MiB", 100_000_000: "95.4 MiB", 8 << 30: "8.0 GiB",
	} {
		if got := output.Size(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
}
