package extension

import (
	"github.com/bowsprit/bowsprit"
	kinds "github.com/bowsprit/bowsprit/internal/feature/extension"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/server/config"
)

// In adds kinds to a server in this process, by the field Extensions of its configuration. It returns an error for an
// invalid kind.
func In(all ...Kind) (bowsprit.Extension, error) {
	p, err := makePart(all)
	if err != nil {
		return bowsprit.Extension{}, err
	}
	return config.NewExtension(part.Extension{Part: p}), nil
}

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
