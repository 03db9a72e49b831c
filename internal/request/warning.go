package request

import (
	"context"
	"sync"
	"unicode/utf8"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Limits of the warnings of one answer, in runes of text, as Kubernetes has them: while everything fits into
// warningsTotal nothing is cut; else each text is cut to warningLength and those beyond the total are dropped.
const (
	warningsTotal = 4 * 1024
	warningLength = 256
)

type warnings struct {
	mu    sync.Mutex
	texts []string // without duplicates, in the order they came
	known map[string]bool
}

// Warn adds a sentence for the client to the answer of the request that ctx belongs to: a header `Warning: 299 -
// "text"`, which kubectl prints on stderr. Empty and repeated texts are ignored, as is everything that comes after the
// answer's header has been sent, or outside of a request.
func Warn(ctx context.Context, text string) {
	if s := ScopeOf(ctx); s != nil {
		s.Warn(text)
	}
}

// Warn is the function Warn for a known scope.
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

// Warnings returns the values of the Warning headers, nil if there are none. Texts that a header cannot hold (control
// characters, invalid UTF-8) are left out.
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

// cut returns the first n runes of s. What it cuts is valid UTF-8 afterwards, as Kubernetes' is.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n])
}
