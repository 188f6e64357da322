package adapter

// slotPipelines are the pipelines of [NewSlotPipelines].
type slotPipelines [64]*Pipeline

// NewSlotPipelines returns a [Pipeline] for every 256 slots of a cluster, each with c's Connections.
// They are for a client of several servers that does not report the server of a command. A frozen
// server delays commands for another server only if the two share a pipeline.
func NewSlotPipelines(c Client) Pipelines {
	p := new(slotPipelines)
	for i := range p {
		p[i] = NewPipeline(c)
	}
	return p
}

// To implements Pipelines.
func (p *slotPipelines) To(key string) *Pipeline { return p[slot(key)/256] }

// Close implements Pipelines.
func (p *slotPipelines) Close() {
	for _, one := range p {
		one.Close()
	}
}
