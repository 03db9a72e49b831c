package encrypt

import (
	"errors"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// redacted removes the keys in the file from an error about it. The library prints all of an element with two
// providers.
func redacted(err error, file string) error {
	text, failed := os.ReadFile(file)
	if failed != nil {
		return err
	}
	var doc any
	if yaml.Unmarshal(text, &doc) != nil {
		return err // nothing of it was decoded
	}
	message := err.Error()
	for _, secret := range secretsIn(doc) {
		message = strings.ReplaceAll(message, secret, "REDACTED")
	}
	if message == err.Error() {
		return err
	}
	return errors.New(message)
}

// secretsIn returns the strings that fields named secret have, anywhere in a document.
func secretsIn(doc any) (out []string) {
	switch doc := doc.(type) {
	case []any:
		for _, e := range doc {
			out = append(out, secretsIn(e)...)
		}
	case map[string]any:
		for name, v := range doc {
			if s, ok := v.(string); ok && s != "" && strings.EqualFold(name, "secret") {
				out = append(out, s)
				continue
			}
			out = append(out, secretsIn(v)...)
		}
	}
	return out
}
