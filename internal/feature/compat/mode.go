package compat

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Annotation is the annotation of a definition with its own policy: a mode, or a document with a mode and the fields of
// a Policy.
const Annotation = "bowsprit.dev/crd-change-policy"

// Mode is the treatment of findings by a server.
type Mode string

// The modes. Enforce refuses a change with an error among its findings, and Warn reports all findings to the client.
const (
	Enforce Mode = "Enforce"
	Warn    Mode = "Warn"
	NoCheck Mode = "Off"
)

// UnmarshalJSON accepts false for Off, which is a boolean in YAML. The YAML library passes it on as a string.
func (m *Mode) UnmarshalJSON(text []byte) error {
	*m = Mode(strings.Trim(string(text), `"`))
	if *m == "false" {
		*m = NoCheck
	}
	return nil
}

// CheckMode returns an error unless the mode exists.
func CheckMode(mode Mode) error {
	if mode == Enforce || mode == Warn || mode == NoCheck {
		return nil
	}
	return fmt.Errorf("there is no mode %q: use Enforce, Warn or Off", mode)
}

// Own is the policy in the annotation of a definition.
type Own struct {
	// Mode is "" for the server's mode.
	Mode   Mode `json:"mode,omitempty"`
	Policy `json:",inline"`
}

// ReadOwn reads the annotation of a definition. It refuses unknown modes, fields, classes and levels.
func ReadOwn(text string) (*Own, error) {
	if mode := Mode(strings.TrimSpace(text)); !strings.ContainsAny(text, ":{") {
		return &Own{Mode: mode}, CheckMode(mode)
	}
	own := &Own{}
	if err := yaml.UnmarshalStrict([]byte(text), own); err != nil {
		return nil, err
	}
	if own.Mode != "" {
		if err := CheckMode(own.Mode); err != nil {
			return nil, err
		}
	}
	return own, own.check()
}
