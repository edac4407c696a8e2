-- markFields returns the names of the mark's fields in their order, after the version, and
-- the names of those that are numbers; internal/nodemark says what they mean.
local function markFields()
  return {'state', 'print', 'run', 'replication', 'opens', 'clientOpens', 'why', 'longest', 'durable', 'clientDurable', 'lengthened', 'before', 'told', 'origin', 'list'},
    {'opens', 'clientOpens', 'longest', 'durable', 'clientDurable', 'told'}
end
