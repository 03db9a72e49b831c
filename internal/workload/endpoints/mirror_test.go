package endpoints

//lint:file-ignore SA1019 Endpoints are made and served as ever

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func custom(subsets ...corev1.EndpointSubset) *corev1.Endpoints {
	return &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "web", UID: "1", Labels: map[string]string{"team": "a"}, Annotations: map[string]string{
			"note": "b", corev1.EndpointsLastChangeTriggerTime: "t", corev1.LastAppliedConfigAnnotation: "{}",
		},
	}, Subsets: subsets}
}

func at(port int32, ready, notReady string) (s corev1.EndpointSubset) {
	if port > 0 {
		s.Ports = []corev1.EndpointPort{{Port: port, Protocol: corev1.ProtocolTCP}}
	}
	for _, ip := range strings.Fields(ready) {
		s.Addresses = append(s.Addresses, corev1.EndpointAddress{IP: ip})
	}
	for _, ip := range strings.Fields(notReady) {
		s.NotReadyAddresses = append(s.NotReadyAddresses, corev1.EndpointAddress{IP: ip})
	}
	return s
}

// text describes the changes: the slices to create, update and delete.
func (m *mirroring) text() string {
	var out []string
	for i, list := range [][]*discoveryv1.EndpointSlice{m.create, m.update, m.remove} {
		for _, s := range list {
			line := fmt.Sprintf("%s%s %s", []string{"+", "=", "-"}[i], s.Name, s.AddressType)
			for _, p := range s.Ports {
				line += fmt.Sprintf(" :%d", *p.Port)
			}
			for _, e := range s.Endpoints {
				line += fmt.Sprintf(" %s/%v", e.Addresses[0], *e.Conditions.Ready)
			}
			out = append(out, line)
		}
	}
	slices.Sort(out)
	if m.invalid+m.skipped > 0 {
		out = append(out, fmt.Sprintf("invalid %d skipped %d", m.invalid, m.skipped))
	}
	return strings.Join(out, "; ")
}

func TestMirror(t *testing.T) {
	many := ""
	for i := range mostAddresses + 2 {
		many += fmt.Sprintf(" 10.0.%d.%d", i/256, i%256)
	}
	made := func(name string, ports []discoveryv1.EndpointPort, of ...string) *discoveryv1.EndpointSlice {
		s := mirrorSlice(custom(), discoveryv1.AddressTypeIPv4, ports)
		s.Name = name
		for _, ip := range of {
			ready := true
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			})
		}
		return s
	}
	web := slicePorts(at(80, "", "").Ports)
	of := made("x", web, "10.0.0.2", "10.0.0.1")
	elsewhere := made("x", web, "10.0.0.1", "10.0.0.2")
	elsewhere.OwnerReferences[0].UID = types.UID("0")
	have := func(list ...*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice { return list }
	two := at(80, "10.0.0.1 10.0.0.2", "")
	for name, c := range map[string]struct {
		of   corev1.EndpointSubset
		more []corev1.EndpointSubset
		have []*discoveryv1.EndpointSlice
		want string
	}{
		"new":           {of: at(80, "10.0.0.1", "10.0.0.2"), want: "+ IPv4 :80 10.0.0.1/true 10.0.0.2/false"},
		"both families": {of: at(80, "10.0.0.1 fd00::1", ""), want: "+ IPv4 :80 10.0.0.1/true; + IPv6 :80 fd00::1/true"},
		"no ports":      {of: at(0, "10.0.0.1", ""), want: "+ IPv4 10.0.0.1/true"},
		"irregular addresses": {
			of: at(80, "010.0.0.1 x", ""), want: "+ IPv4 :80 10.0.0.1/true; invalid 1 skipped 0",
		},
		"subsets of the same addresses": {
			of: at(80, "10.0.0.1", ""), more: []corev1.EndpointSubset{at(81, "10.0.0.1", "")},
			want: "+ IPv4 :80 :81 10.0.0.1/true",
		},
		"an address that is ready and not": {
			of: at(80, "10.0.0.1", ""), more: []corev1.EndpointSubset{at(80, "", "10.0.0.1")},
			want: "+ IPv4 :80 10.0.0.1/false",
		},
		"as it is":         {of: two, have: have(of)},
		"one twice":        {of: two, have: have(of, made("y", web)), want: "-y IPv4 :80"},
		"of another's uid": {of: two, have: have(elsewhere), want: "=x IPv4 :80 10.0.0.1/true 10.0.0.2/true"},
		"changed":          {of: at(80, "10.0.0.1", ""), have: have(of), want: "=x IPv4 :80 10.0.0.1/true"},
		"another port":     {of: at(81, "10.0.0.1", ""), have: have(of), want: "=x IPv4 :81 10.0.0.1/true"},
		"another family": {
			of: at(80, "fd00::1", ""), have: have(of),
			want: "+ IPv6 :80 fd00::1/true; -x IPv4 :80 10.0.0.2/true 10.0.0.1/true",
		},
		"none left": {of: at(80, "", ""), have: have(of), want: "-x IPv4 :80 10.0.0.2/true 10.0.0.1/true"},
	} {
		got := mirror(custom(append(c.more, c.of)...), c.have)
		if got.text() != c.want {
			t.Errorf("%s: %s, want %s", name, got.text(), c.want)
		}
		for _, s := range slices.Concat(got.create, got.update) {
			if s.Labels["team"] != "a" || s.Labels[discoveryv1.LabelServiceName] != "web" ||
				s.Labels[discoveryv1.LabelManagedBy] != mirroredBy || len(s.Annotations) != 1 ||
				s.Annotations["note"] != "b" || s.OwnerReferences[0].UID != "1" {
				t.Errorf("%s: %+v", name, s.ObjectMeta)
			}
		}
	}
	full := mirror(custom(at(80, many, "x")), nil)
	if len(full.create) != 1 || len(full.create[0].Endpoints) != mostAddresses || full.skipped != 3 {
		t.Errorf("too many addresses: %d slices, %d skipped", len(full.create), full.skipped)
	}
}
