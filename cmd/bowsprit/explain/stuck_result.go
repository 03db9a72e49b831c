package explain

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// stuck is the result of "why-stuck".
type stuck struct {
	Resource  string `json:"resource"` // such as "crontabs.stable.example.com"
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Exists    bool   `json:"exists"`
	// Terminating is the time since which the object is being deleted. It is missing if the object is not.
	Terminating *time.Time `json:"terminatingSince,omitempty"`
	Finalizers  []string   `json:"finalizers,omitempty"`
	// Reasons are in the words and the order of the text for people.
	Reasons []reason `json:"reasons"`

	title string // of the object: its kind and name
}

// reason is a reason why an object remains, or a fact about it.
type reason struct {
	Text    string   `json:"text"`
	Details []string `json:"details,omitempty"`
}

// add adds a reason without details.
func (s *stuck) add(format string, args ...any) *reason {
	s.Reasons = append(s.Reasons, reason{Text: fmt.Sprintf(format, args...)})
	return &s.Reasons[len(s.Reasons)-1]
}

// detail adds a line to a reason.
func (r *reason) detail(format string, args ...any) {
	r.Details = append(r.Details, fmt.Sprintf(format, args...))
}

// text writes the result for people.
func (s *stuck) text(out io.Writer) error {
	var b strings.Builder
	switch {
	case !s.Exists:
		fmt.Fprintf(&b, "%s does not exist (any more).\n", s.title)
	case s.Terminating == nil:
		fmt.Fprintf(&b, "%s is not being deleted.\n", s.title)
	default:
		fmt.Fprintf(&b, "%s has been terminating since %s.\n", s.title, s.Terminating.UTC().Format(time.RFC3339))
	}
	for _, r := range s.Reasons {
		fmt.Fprintf(&b, "\n%s\n", r.Text)
		for _, line := range r.Details {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
