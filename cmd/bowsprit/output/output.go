// Package output prints the results of commands: as text for people, or as JSON or YAML for programs.
//
// A command binds a Form as its flag --output and calls Print once with its result. JSON and YAML have the same fields.
// The fields of a result are a promise to programs: later versions add fields, and keep the others.
package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// Form is the format of a result. As a pflag.Value it refuses other words than its own.
type Form string

const (
	// Text is text for people. Programs must not depend on it.
	Text Form = "text"
	// JSON is one indented document.
	JSON Form = "json"
	// YAML is one document with the fields of JSON.
	YAML Form = "yaml"
)

var _ pflag.Value = (*Form)(nil)

// errForm is the error about another word.
var errForm = errors.New("use text, json or yaml")

// Bind declares the flag --output, or -o, with the default Text.
func (f *Form) Bind(flags *pflag.FlagSet) {
	*f = Text
	flags.VarP(f, "output", "o", "text, json or yaml")
}

// Set implements pflag.Value.
func (f *Form) Set(word string) error {
	if !slices.Contains([]Form{Text, JSON, YAML}, Form(word)) {
		return errForm
	}
	*f = Form(word)
	return nil
}

// String implements pflag.Value.
func (f *Form) String() string { return string(*f) }

// Type implements pflag.Value. Help shows it behind the flag.
func (f *Form) Type() string { return "form" }

// Print writes a result: value as JSON or YAML, or the text of text.
func (f Form) Print(out io.Writer, value any, text func(io.Writer) error) error {
	switch f {
	case JSON:
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	case YAML:
		data, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = out.Write(data)
		return err
	}
	return text(out)
}

// ForPrograms reports whether the result is JSON or YAML, so that nothing else may be on standard output.
func (f Form) ForPrograms() bool { return f != Text }

// Streams holds the writers of a command: Out for the result, in a form, and Notes for remarks to the user.
type Streams struct {
	Out, Notes io.Writer
	Form       Form
}

// Size returns a number of bytes for people, in the units of the documentation: KiB, MiB, GiB.
func Size(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", (bytes+1023)>>10)
}
