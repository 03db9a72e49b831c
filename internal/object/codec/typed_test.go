package codec

import (
	"encoding/json"
	"math"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// everyForm has a field for each form in the types of the API.
type everyForm struct {
	metav1.TypeMeta `json:",inline"`
	Embedded        `json:",inline"`
	Named           Embedded `json:"named"`
	Skipped         string   `json:"-"`
	private         int
	Untagged        bool
	Z               int8                         `json:"z"`
	A               uint16                       `json:"a,omitempty"`
	Float           float64                      `json:"float"`
	Small           float32                      `json:"small,omitempty"`
	Text            string                       `json:"text"`
	Bytes           []byte                       `json:"bytes"`
	List            []string                     `json:"list"`
	NoList          []int                        `json:"noList,omitempty"`
	Map             map[string]resource.Quantity `json:"map"`
	Numbered        map[int]string               `json:"numbered,omitempty"`
	Pointer         *int64                       `json:"pointer"`
	Gone            *int64                       `json:"gone,omitempty"`
	Time            metav1.Time                  `json:"time,omitempty,omitzero"`
	Micro           metav1.MicroTime             `json:"micro"`
	Maybe           *metav1.Time                 `json:"maybe,omitempty"`
	Zero            *metav1.Time                 `json:"zero,omitzero"`
	Zeros           *int                         `json:"zeros,omitzero"`
	Quantity        resource.Quantity            `json:"quantity"`
	Port            intstr.IntOrString           `json:"port"`
	Raw             runtime.RawExtension         `json:"raw"`
	Fields          *metav1.FieldsV1             `json:"fields,omitempty"`
	Any             any                          `json:"any"`
	Pair            [2]int                       `json:"pair"`
	Self            *everyForm                   `json:"self,omitempty"`
	Selves          map[string]everyForm         `json:"selves,omitempty"`
	Struct          struct{}                     `json:"struct,omitempty"`
	Zerostruct      struct{ A int }              `json:"zerostruct,omitzero"`
}

// Embedded has fields that sort between fields of other structs.
type Embedded struct {
	Middle string `json:"middle,omitempty"`
}

func TestAppendTyped(t *testing.T) {
	t.Parallel()
	one, zero := int64(1), 0
	at := metav1.NewTime(time.Unix(1700000000, 0))
	full := everyForm{
		TypeMeta: metav1.TypeMeta{Kind: "K", APIVersion: "v1"}, Embedded: Embedded{Middle: "m<&>\u2028\x01ä"},
		Named: Embedded{Middle: "\xff"}, Skipped: "s", private: 1, Untagged: true, Z: -1, A: 2, Float: 1e-7, Small: 0.1,
		Text: `"\`, Bytes: []byte("bytes"), List: []string{"b", "a"}, NoList: []int{1},
		Map:      map[string]resource.Quantity{"b": resource.MustParse("1Gi"), "a": resource.MustParse("100m")},
		Numbered: map[int]string{10: "x", 9: "y"}, Pointer: &one, Gone: &one, Time: at,
		Micro: metav1.NewMicroTime(at.Time), Maybe: &at, Zero: &metav1.Time{}, Zeros: &zero,
		Quantity: resource.MustParse("1.5"), Port: intstr.FromString("http"),
		Raw:    runtime.RawExtension{Raw: []byte(`{ "b": 1.0, "a": "<" }`)},
		Fields: metav1.NewFieldsV1(`{"f:a":{"k:{\"n\":\"x\"}":{}}}`),
		Any:    map[string]any{"z": 1, "a": nil}, Pair: [2]int{1, 2}, Zerostruct: struct{ A int }{1},
	}
	full.Self = &everyForm{List: []string{}, Map: map[string]resource.Quantity{}, Port: intstr.FromInt32(80)}
	full.Selves = map[string]everyForm{"x": {}}
	for name, v := range map[string]any{
		"full": &full, "empty": &everyForm{}, "pod": &corev1.Pod{}, "no pointer": full.Named, "nil": (*corev1.Pod)(nil),
		"nothing": nil, "text": new(string), "any": new(any),
	} {
		doc, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := appendTyped([]byte("+"), v)
		if err != nil || got[0] != '+' {
			t.Fatalf("%s: %s %v", name, got, err)
		}
		if want := normalized(t, doc); normalized(t, got[1:]) != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got[1:], want)
		} else if name == "pod" && string(got[1:]) != want {
			t.Errorf("%s is not sorted: %s", name, got[1:])
		}
	}
	for name, v := range map[string]any{
		"raw JSON": &everyForm{Raw: runtime.RawExtension{Raw: []byte("{")}}, "number": &everyForm{Float: math.NaN()},
	} {
		_, want := json.Marshal(v)
		if got, err := appendTyped(nil, v); err == nil || want == nil {
			t.Errorf("broken %s: %s", name, got)
		}
	}
}

// A type that holds itself is met by several goroutines at once.
func TestAppendTypedAtOnce(t *testing.T) {
	t.Parallel()
	type node struct {
		Next *node           `json:"next,omitempty"`
		Kids map[string]node `json:"kids,omitempty"`
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := appendTyped(nil, &node{Next: &node{Kids: map[string]node{"a": {}}}})
			if want := `{"next":{"kids":{"a":{}}}}`; err != nil || string(got) != want {
				t.Errorf("%s %v", got, err)
			}
		})
	}
	all.Wait()
}

func normalized(t *testing.T, doc []byte) string {
	t.Helper()
	v, err := DecodeJSON(doc)
	if err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	return string(AppendJSON(nil, v))
}
