package quantity

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// hostile are texts for which the library needs seconds to years.
var hostile = []string{
	"1e-1000000000", "1e1000000000", "1E-3000001", "1e3000001", "-1e-2147483648", "1e2147483647", "0e1000000000",
	"0.0e-1000000000", "00e99999999", "1e+1000000000", "9.5e-1000000000", "5.e1000000000", ".5e1000000000",
	"1e4297967297", // 3000001 in 32 bits
	strings.Repeat("7", 400_000), "0." + strings.Repeat("7", 400_000) + "Ki",
	"1" + strings.Repeat("0", 200_000), "1" + strings.Repeat("0", 30_000) + "m",
	"12345678901234567890e1000000", "12345678901234567890e30000", " 1e-1000000000 ", "1e-1000000000\n",
}

func TestHostile(t *testing.T) {
	for _, text := range hostile {
		if _, err := Parse(text); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: got %v", shown(text), err)
		}
	}
}

// TestAccepted has texts that kube-apiserver answers within a second.
func TestAccepted(t *testing.T) {
	for text, want := range map[string]string{
		"1e-1000": "1e-9", "1e-3000000": "1e-9", "-1e-3000000": "-1e-9", "1e1000": "10e999", "1e3000000": "1e3000000",
		"0e3000000": "0", "0e-3000000": "0", "1e4294967297": "10", "12.5e-7": "1250e-9",
		"0." + strings.Repeat("9", 300_000): "1", "0." + strings.Repeat("7", 300_000): "777777778n",
		strings.Repeat("7", 150_000):                              strings.Repeat("7", 150_000),
		"1" + strings.Repeat("0", 10_000):                         "1" + strings.Repeat("0", 10_000) + "E",
		strings.Repeat("0", 1000) + "1024Ki":                      "1Mi",
		strings.Repeat("0", 1_000_000) + "1.5Ki":                  "1536",
		strings.Repeat("0", 1_000_000):                            "0",
		strings.Repeat("0", 1_000_000) + "12345678901234567890.5": "12345678901234567890500m",
		strings.Repeat("9", 100) + "Ei":                           "9223372036854775807",
		"123456789012345678901234567890e-3000000":                 "1e-9",
	} {
		q, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", shown(text), err)
			continue
		}
		if strings.HasSuffix(want, "0E") {
			continue // the library takes no zeros into the suffix without a name; an answer suffices
		}
		if got := q.String(); got != want {
			t.Errorf("%s: got %s, want %s", shown(text), shown(got), shown(want))
		}
	}
}

// randomText returns a text that is nearly always a quantity and that the library parses in little time.
func randomText(r *rand.Rand) string {
	digits := func(most int) string {
		var b strings.Builder
		for range r.IntN(most + 1) {
			b.WriteByte("0000123456789999"[r.IntN(16)])
		}
		return b.String()
	}
	var b strings.Builder
	b.WriteString([]string{"", "", "-", "+"}[r.IntN(4)])
	b.WriteString(digits([]int{1, 4, 19, 60}[r.IntN(4)]))
	if r.IntN(2) == 0 {
		b.WriteString("." + digits([]int{1, 4, 19, 60}[r.IntN(4)]))
	}
	switch r.IntN(4) {
	case 0:
		suffixes := []string{"n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
		b.WriteString(suffixes[r.IntN(len(suffixes))])
	case 1:
		fmt.Fprintf(&b, "%c%d", "eE"[r.IntN(2)], r.IntN(61)-30)
	case 2:
		fmt.Fprintf(&b, "e%s%d", []string{"", "-", "+"}[r.IntN(3)], r.IntN(1200))
	}
	if r.IntN(20) == 0 {
		b.WriteString([]string{" ", "e", ".", "x", "i", "e--1"}[r.IntN(6)])
	}
	return b.String()
}

func TestParseMatchesTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 30_000 {
		text := randomText(r)
		want, wantErr := resource.ParseQuantity(text)
		got, err := Parse(text)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("%q: got %v, want %v", text, err, wantErr)
		}
		if err != nil {
			continue
		}
		if got.Cmp(want) != 0 || got.Format != want.Format || got.String() != want.String() {
			t.Fatalf("%q: got %s (%s), want %s (%s)", text, got.String(), got.Format, want.String(), want.Format)
		}
	}
}

func TestSumsMatchTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		a, err := resource.ParseQuantity(randomText(r))
		if err != nil {
			continue
		}
		b, err := resource.ParseQuantity(randomText(r))
		if err != nil {
			continue
		}
		if r.IntN(5) == 0 {
			b = a.DeepCopy()
		}
		if got, want := Cmp(a, b), a.Cmp(b); got != want {
			t.Fatalf("Cmp(%s, %s): got %d, want %d", a.String(), b.String(), got, want)
		}
		sum, want := a.DeepCopy(), a.DeepCopy()
		Add(&sum, b)
		want.Add(b)
		if !numberOf(a).large() && !numberOf(b).large() && sum.Cmp(want) != 0 {
			t.Fatalf("%s + %s: got %s, want %s", a.String(), b.String(), sum.String(), want.String())
		}
		if numberOf(sum).large() || numberOf(b).large() {
			continue
		}
		if Sub(&sum, b); Cmp(sum, a) != 0 {
			t.Fatalf("%s + %s - %s: got %s", a.String(), b.String(), b.String(), sum.String())
		}
	}
}

// TestSumsOfLargeTerms adds, subtracts and compares quantities that the library would write out with three million
// digits each time.
func TestSumsOfLargeTerms(t *testing.T) {
	large, err := Parse("1e3000000")
	if err != nil {
		t.Fatal(err)
	}
	sum := resource.MustParse("1500n")
	for range 1000 {
		Add(&sum, large)
		Add(&sum, resource.MustParse("1Gi"))
		if Cmp(sum, large) != 0 || Cmp(resource.MustParse("1"), sum) != -1 {
			t.Fatalf("got %s", sum.String())
		}
	}
	Sub(&sum, large)
	if !sum.IsZero() {
		t.Errorf("got %s", sum.String())
	}
	Sub(&sum, large)
	if got := sum.String(); got != "-1e3000000" {
		t.Errorf("got %s", got)
	}
}

func TestPlain(t *testing.T) {
	for _, text := range hostile {
		for _, doc := range []string{`{"a":"` + text + `"}`, `[` + text + `]`, `"x": ` + text} {
			if Plain([]byte(doc)) {
				t.Errorf("%s is plain", shown(text))
			}
		}
	}
	if doc := `{"a":"1e-20","image":"x@sha256:12e45678901234aa","n":1.5e300,"h":"12e4567890123b","v":"100m"}`; !Plain([]byte(doc)) {
		t.Errorf("%s is not plain", doc)
	}
}

// BenchmarkLibraryAtTheLimits measures the library at the limits: kube-apiserver prints a quantity about ten times,
// which takes a second.
func BenchmarkLibraryAtTheLimits(b *testing.B) {
	for name, text := range map[string]string{
		"negative": fmt.Sprintf("1e-%d", MaxExponent), "positive": fmt.Sprintf("1e%d", MaxExponent),
		"digits": strings.Repeat("7", 300_000), "zeros": "1" + strings.Repeat("0", 15_000),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				q, err := resource.ParseQuantity(text)
				if err != nil {
					b.Fatal(err)
				}
				q.Cmp(resource.MustParse("1"))
				copied := q.DeepCopy()
				copied.RoundUp(resource.Milli)
				_ = copied.String()
			}
		})
	}
}
