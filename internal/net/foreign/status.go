package foreign

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxMessage bounds another program's explanation for the client, such as a webhook's denial, in bytes.
const MaxMessage = 32 << 10

// maxCauses bounds the causes of a foreign Status.
const maxCauses = 100

// Status cuts the texts of another program's Status to bounds, in place: the message to MaxMessage bytes, the others to
// MaxText, the causes to 100.
func Status(s *metav1.Status) {
	s.Message = Clip(s.Message, MaxMessage)
	s.Reason = metav1.StatusReason(Clip(string(s.Reason), MaxText))
	s.Continue, s.ResourceVersion = Clip(s.Continue, MaxText), Clip(s.ResourceVersion, MaxText)
	d := s.Details
	if d == nil {
		return
	}
	for _, text := range []*string{&d.Name, &d.Group, &d.Kind} {
		*text = Clip(*text, MaxText)
	}
	d.Causes = d.Causes[:min(len(d.Causes), maxCauses):min(len(d.Causes), maxCauses)]
	for i := range d.Causes {
		c := &d.Causes[i]
		c.Type = metav1.CauseType(Clip(string(c.Type), MaxText))
		c.Message, c.Field = Clip(c.Message, MaxText), Clip(c.Field, MaxText)
	}
}
