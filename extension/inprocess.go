package extension

import (
	"github.com/bowsprit/bowsprit"
	kinds "github.com/bowsprit/bowsprit/internal/feature/extension"
	"github.com/bowsprit/bowsprit/internal/part"
)

// In adds kinds to a server in this process, by the field Extensions of its configuration. It returns an error for an
// invalid kind.
func In(all ...Kind) (bowsprit.Extension, error) {
	p, err := makePart(all)
	return brought{part.Extension{Part: p}}, err
}

// brought is an extension in the form that a server accepts.
type brought struct{ extension part.Extension }

// Bring implements bowsprit.Extension.
func (b brought) Bring() part.Extension { return b.extension }

func makePart(all []Kind) (part.Part, error) {
	var out []*kinds.Kind
	for i := range all {
		k, err := all[i].internal()
		if err != nil {
			return part.Part{}, err
		}
		out = append(out, k)
	}
	return kinds.Part(out)
}
