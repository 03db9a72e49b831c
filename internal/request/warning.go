package request

import (
	"context"
	"sync"
	"unicode/utf8"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// warningsTotal and warningLength limit the warnings of one response, in runes, as in Kubernetes. If the sum exceeds
// warningsTotal, each text is cut to warningLength and texts beyond the total are dropped.
const (
	warningsTotal = 4 * 1024
	warningLength = 256
)

type warnings struct {
	mu    sync.Mutex
	texts []string // without duplicates, in order of arrival
	known map[string]bool
}

// Warn adds a warning to the response of the request of ctx: a header `Warning: 299 - "text"`, which kubectl prints on
// stderr. It ignores empty and repeated texts, calls after the response header was sent, and calls outside of a
// request.
func Warn(ctx context.Context, text string) {
	if s := ScopeOf(ctx); s != nil {
		s.Warn(text)
	}
}

// Warn is the function Warn for a Scope.
func (s *Scope) Warn(text string) {
	if text == "" {
		return
	}
	s.warnings.mu.Lock()
	defer s.warnings.mu.Unlock()
	if s.warnings.known[text] {
		return
	}
	if s.warnings.known == nil {
		s.warnings.known = map[string]bool{}
	}
	s.warnings.known[text] = true
	s.warnings.texts = append(s.warnings.texts, text)
}

// Warnings returns the values of the Warning headers, nil if there are none. It omits texts that a header cannot hold
// (control characters, invalid UTF-8).
func (s *Scope) Warnings() []string {
	s.warnings.mu.Lock()
	defer s.warnings.mu.Unlock()
	if len(s.warnings.texts) == 0 {
		return nil
	}

	// over is the first text that no longer fits; the texts up to it are all sent, cut, even if they exceed the total.
	total, over := 0, -1
	for i, text := range s.warnings.texts {
		if _, err := utilnet.NewWarningHeader(299, "", text); err != nil {
			continue
		}
		if total += utf8.RuneCountInString(text); total > warningsTotal {
			over = i
			break
		}
	}
	headers := make([]string, 0, len(s.warnings.texts))
	total = 0
	for i, text := range s.warnings.texts {
		if over >= 0 {
			if i > over && total >= warningsTotal {
				break
			}
			text = cut(text, warningLength)
		}
		header, err := utilnet.NewWarningHeader(299, "", text)
		if err != nil {
			continue
		}
		total += utf8.RuneCountInString(text)
		headers = append(headers, header)
	}
	return headers
}

// cut returns the first n runes of s. As in Kubernetes, a shortened text becomes valid UTF-8.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n])
}
