-- addHold adds a grant to a record, with a new token. A reader beside others shares theirs, and
-- draws none.
--
-- value, weight, made, slots: of the grant (see readRecord)
-- ends, now: its end (ms), and the clock (us)
-- proposed, spare, last: see draw
--
-- Returns the grant, the last token of those that belong to it, how many below that one do,
-- and the token counter afterwards. Nothing is written.
-- uses draw
local function addHold(record, value, weight, made, slots, ends, proposed, spare, last, now)
  local holds = record.holds
  local shares = record.shared and weight < record.limit
  local text, reserved = last, 0
  if shares and holds[1] then
    for _, h in ipairs(holds) do -- the counter may have been lost
      if not text or h.token + 0 > text + 0 then
        text = h.token
      end
    end
  else
    text, reserved = draw(proposed, shares and 0 or spare, last, now)
  end
  local first = text
  if reserved > 0 then
    first = string.format('%.0f', text - reserved)
  end
  local ms = string.format('%.0f', (now - now % 1000) / 1000)
  local h = {token = first, weight = weight, ends = ends, begun = ms, slots = slots, broken = '0', made = made, value = value, owner = string.match(value, '^[^ ]+')}
  holds[#holds + 1] = h
  return h, text, reserved, text
end
