package v1alpha2

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type outer struct {
	NoField string
	Meta    metav1.ListMeta `protobuf:"bytes,1,opt"`
	Name    string          `protobuf:"bytes,2,opt"`
	On      bool            `protobuf:"varint,3,opt"`
	Number  *int32          `protobuf:"varint,4,opt"`
	Inner   *inner          `protobuf:"bytes,5,opt"`
	List    []inner         `protobuf:"bytes,6,rep"`
	Words   []string        `protobuf:"bytes,17,rep"`
}

type inner struct {
	Size int64 `protobuf:"varint,1,opt"`
}

func TestMessages(t *testing.T) {
	t.Parallel()
	minus := int32(-1)
	for name, c := range map[string]struct {
		value   outer
		message string
	}{
		"empty values are there, nil ones not": {
			outer{Meta: metav1.ListMeta{}},
			"\x0a\x06\x0a\x00\x12\x00\x1a\x00" + "\x12\x00" + "\x18\x00",
		},
		"all": {
			outer{
				Meta: metav1.ListMeta{ResourceVersion: "7"}, Name: "n", On: true, Number: &minus, Inner: &inner{2},
				List: []inner{{0}, {300}}, Words: []string{"a", ""},
			},
			"\x0a\x07\x0a\x00\x12\x017\x1a\x00" + "\x12\x01n" + "\x18\x01" + "\x20" +
				"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + "\x2a\x02\x08\x02" + "\x32\x02\x08\x00" +
				"\x32\x03\x08\xac\x02" + "\x8a\x01\x01a" + "\x8a\x01\x00",
		},
	} {
		got, err := marshal(&c.value)
		if err != nil || string(got) != c.message {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.message)
		}
		var back outer
		if err := unmarshal([]byte(c.message), &back); err != nil || !reflect.DeepEqual(back, c.value) {
			t.Errorf("%s: read back as %+v, %v", name, back, err)
		}
	}
}

func TestUnmarshal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		message string
		want    outer
		err     string
	}{
		"unknown fields":         {"\x7a\x01x\x12\x01n\x78\x05", outer{Name: "n"}, ""},
		"the last one counts":    {"\x12\x01a\x12\x01b", outer{Name: "b"}, ""},
		"a struct is added to":   {"\x2a\x02\x08\x02\x2a\x00", outer{Inner: &inner{2}}, ""},
		"number for a string":    {"\x10\x01", outer{}, "Name: wire type 0 is not the field's"},
		"string for a number":    {"\x22\x01a", outer{}, "Number: wire type 2 is not the field's"},
		"number for a struct":    {"\x28\x01", outer{}, "Inner: wire type 0 is not the field's"},
		"ends within a field":    {"\x12\x05a", outer{}, "unexpected EOF"},
		"ends within a tag":      {"\x8a", outer{}, "unexpected EOF"},
		"ends within what is in": {"\x2a\x01\x08", outer{}, "Inner: unexpected EOF"},
	} {
		var got outer
		err := unmarshal([]byte(c.message), &got)
		switch {
		case c.err != "":
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: %v, want %s", name, err, c.err)
			}
		case err != nil || !reflect.DeepEqual(got, c.want):
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}

func TestNoForm(t *testing.T) {
	t.Parallel()
	v := struct {
		F float64 `protobuf:"fixed64,1,opt"`
	}{}
	const want = "float64 has no protobuf form"
	if _, err := marshal(&v); err == nil || err.Error() != want {
		t.Errorf("write: %v, want %s", err, want)
	}
	if err := unmarshal([]byte("\x08\x01"), &v); err == nil || err.Error() != "F: "+want {
		t.Errorf("read: %v, want F: %s", err, want)
	}
}
