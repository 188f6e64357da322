package adapter

// SlotPipelines are for a client of several servers that does not report the server of a command:
// there is one [Pipeline] for every 256 slots of a cluster. A frozen server delays commands for
// another server only if the two share a pipeline.
type SlotPipelines [64]*Pipeline

// NewSlotPipelines returns pipelines of one client, each with its Connections.
func NewSlotPipelines(c Client) *SlotPipelines {
	p := new(SlotPipelines)
	for i := range p {
		p[i] = NewPipeline(c)
	}
	return p
}

// To returns the pipeline of key.
func (p *SlotPipelines) To(key string) *Pipeline { return p[slot(key)/256] }

// Close frees the timers of all.
func (p *SlotPipelines) Close() {
	for _, one := range p {
		one.Close()
	}
}
